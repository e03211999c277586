/** The names under which hosts pass the file of an edit. */
const NAMES = ['file_path', 'filePath', 'notebook_path', 'path', 'target_file']
/** The headings of a patch that name a file. */
const PATCH = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/gm
const PATHS_MAX = 50

/** The files that a tool call will edit, from the input of a hook. */
export function editedPaths(input: unknown): string[] {
  const found = new Set<string>()
  collect(input, found, 0)
  return [...found].slice(0, PATHS_MAX)
}

function collect(value: unknown, found: Set<string>, depth: number): void {
  if (typeof value === 'string') {
    for (const [, path] of value.matchAll(PATCH)) found.add(path!.trim())
    return
  }
  if (typeof value !== 'object' || value === null || depth > 3) return
  for (const [name, inner] of Object.entries(value)) {
    if (typeof inner === 'string' && NAMES.includes(name)) found.add(inner)
    // The text of a file may look like a patch; the tool that writes it names its file.
    else if (!['content', 'new_string', 'old_string', 'newString', 'oldString'].includes(name)) {
      collect(inner, found, depth + 1)
    }
  }
}
