import type { ServerMessage } from './protocol.ts'

/** The messages of a frame; `undefined` if it is not a JSON array of arrays. */
export function messagesIn(text: string): readonly ServerMessage[] | undefined {
  try {
    const messages: unknown = JSON.parse(text)
    return Array.isArray(messages) && messages.every(Array.isArray)
      ? (messages as unknown as readonly ServerMessage[])
      : undefined
  } catch {
    return undefined
  }
}
