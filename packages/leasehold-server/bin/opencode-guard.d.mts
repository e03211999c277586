/** A plugin for opencode: an edit of a file that another agent holds fails, with the reason. */
export declare const LeaseholdGuard: (context: { readonly directory: string }) => Promise<{
  'tool.execute.before': (
    call: { readonly tool: string },
    given: { readonly args: { readonly filePath?: string; readonly patchText?: string } },
  ) => Promise<void>
}>
