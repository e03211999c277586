import type { ErrorCode } from '../../../port/index.ts'

/** What Azure's error codes mean. */
export const FAULTS: readonly (readonly [mark: RegExp, code: ErrorCode, meaning: string])[] = [
  [
    /AuthenticationFailed|InvalidAuthenticationInfo|NoAuthentication/,
    'unauthenticated',
    'Azure does not accept the key or the signature: check that it is right and has not expired',
  ],
  [
    /Authorization|InsufficientAccountPermissions|AccountIsDisabled|ReadOnly/i,
    'forbidden',
    'the signature does not allow this: it needs the rights read, add, create, write, delete and list',
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
    'something else uses a blob with this prefix: use another prefix',
  ],
]
