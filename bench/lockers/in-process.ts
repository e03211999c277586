/** A mutex in this process, without a lease: no lock service can be faster. */
import { loadPeer } from '../engines/peer-library.js'
import { type Locker, locker } from './locker.js'

export async function openAsyncMutex(): Promise<Locker> {
  const { Mutex } = await loadPeer('async-mutex')
  const mutexes = new Map<string, { acquire(): Promise<() => void> }>()
  return locker(
    async (key) => {
      if (!mutexes.has(key)) mutexes.set(key, new Mutex())
      const release = await mutexes.get(key)!.acquire()
      return { release: async () => release(), believes: () => true }
    },
    async () => {},
  )
}
