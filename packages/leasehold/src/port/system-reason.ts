const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of its path is not a folder',
  EISDIR: 'it is a folder, not a file',
  EEXIST: 'there is something else in its place',
  EACCES: 'this user may not access it',
  EPERM: 'this user may not access it',
  EROFS: 'its file system is read-only',
  ENOSPC: 'the disk is full',
  EMFILE: 'this process has too many open files',
}

/** Why a call of the operating system failed, in words; `undefined` for any other error. */
export function reasonOfSystem(error: unknown): string | undefined {
  return REASONS[String((error as { readonly code?: unknown } | undefined)?.code)]
}

/** The same; for another error its message. */
export function systemReason(error: unknown): string {
  return reasonOfSystem(error) ?? (error as Error).message
}
