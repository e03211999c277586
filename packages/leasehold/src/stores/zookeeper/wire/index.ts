export * from './requests.ts'
export * from './session.ts'
