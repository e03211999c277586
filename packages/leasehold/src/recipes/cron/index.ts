export * from './cron.ts'
export type { CronSchedule } from './schedule.ts'
