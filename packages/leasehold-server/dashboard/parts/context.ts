import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Connection } from '../live/connection.ts'
import { useFrames } from '../live/frames.ts'

export const Live = createContext<Connection | undefined>(undefined)

/** The line to the server; whoever asks for it is drawn in each frame in which it has news. */
export function useLive(): Connection {
  useFrames()
  return useContext(Live)!
}
