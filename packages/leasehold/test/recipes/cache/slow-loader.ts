/** A cache loader that the test ends by hand. */
export function slowLoader() {
  const self = {
    runs: 0,
    signals: [] as AbortSignal[],
    tokens: [] as number[],
    finish: (_: string) => {},
    fail: (_: unknown) => {},
    load: ({ signal, token }: { signal: AbortSignal; token: number }) => {
      self.runs++
      self.signals.push(signal)
      self.tokens.push(token)
      return new Promise<string>((resolve, reject) => {
        self.finish = resolve
        self.fail = reject
      })
    },
  }
  return self
}
