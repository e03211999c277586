export { KeepAlive } from './keep-alive.ts'
export { Timed, Timeouts } from './timeouts.ts'
export { TimerQueue, type TimerTask } from './timer-queue.ts'
