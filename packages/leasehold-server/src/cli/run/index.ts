/** The commands that run another command while something is held. */
export { cronCommand } from './cron.ts'
export { electCommand } from './elect.ts'
export { lockCommand } from './lock.ts'
export { onceCommand } from './once.ts'
export { registerCommand } from './register.ts'
