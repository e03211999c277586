export * from './machine.ts'
export * from './member-table.ts'
export * from './snapshot-format.ts'
