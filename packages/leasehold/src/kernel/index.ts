export * from './journal.ts'
export * from './requests.ts'
