import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Connection } from '../live/connection.ts'
import { useFrames } from '../live/frames.ts'

export const Live = createContext<Connection | undefined>(undefined)

/** The connection to the server. The component is redrawn in each frame with a change. */
export function useLive(): Connection {
  useFrames()
  return useContext(Live)!
}
