import type { ErrorCode } from '../../../port/index.ts'
import { CODE } from './requests.ts'

/** What ZooKeeper's error codes mean. */
export const FAULTS: readonly (readonly [mark: RegExp, code: ErrorCode, meaning: string])[] = [
  [
    new RegExp(` ${CODE.noAuth}: `),
    'forbidden',
    'ZooKeeper forbids access to these nodes: set the auth with which they were created',
  ],
  [
    new RegExp(` ${CODE.authFailed}: `),
    'unauthenticated',
    'ZooKeeper does not accept the credentials: correct auth',
  ],
  [
    new RegExp(` ${CODE.quotaExceeded}: `),
    'storage-full',
    'a quota of ZooKeeper is reached: raise it, or use another root',
  ],
  [
    /connection was closed|ECONNRESET|EPIPE/,
    'unknown-outcome',
    'ZooKeeper closed the connection: the call may have been carried out. If only large entries fail, set entryBytes below jute.maxbuffer of all servers',
  ],
]
