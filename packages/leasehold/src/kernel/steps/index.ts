export * from './claim-admission.ts'
export * from './expire.ts'
export * from './leases-by-slot.ts'
export * from './revoke.ts'
