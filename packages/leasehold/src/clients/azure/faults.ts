import type { ErrorCode } from '../../port/index.ts'

/** What the refusals of Azure mean, by the name of their code. */
export const FAULTS: readonly (readonly [mark: RegExp, code: ErrorCode, meaning: string])[] = [
  [
    /AuthenticationFailed|InvalidAuthenticationInfo|NoAuthentication/,
    'unauthenticated',
    'Azure does not accept the key or the signature: check it, and that it has not expired',
  ],
  [
    /Authorization|InsufficientAccountPermissions|AccountIsDisabled|ReadOnly/i,
    'forbidden',
    'the signature does not allow this: it needs read, add, create, write, delete and list',
  ],
  [
    /ContainerNotFound|ContainerBeingDeleted/,
    'storage-damaged',
    'the container does not exist: create it',
  ],
  [/RequestBodyTooLarge/, 'limit-exceeded', 'the entry is larger than a block may be'],
  [
    /CapacityExceeded|QuotaExceeded|AccountLimitExceeded/,
    'storage-full',
    'the storage account is full: raise its quota',
  ],
  [
    /InvalidBlobType/,
    'unsupported',
    'a blob of the log belongs to something else: use another prefix',
  ],
]
