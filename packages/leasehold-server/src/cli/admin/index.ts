/** The commands for operators: force, access tokens, backups and diagnosis. */
export { accessTokenCommand } from './access-token.ts'
export { backupCommand } from './backup.ts'
export { breakCommand } from './break.ts'
export { doctorCommand } from './doctor.ts'
export { drainCommand } from './drain.ts'
export { restoreCommand } from './restore.ts'
export { revokeCommand } from './revoke.ts'
