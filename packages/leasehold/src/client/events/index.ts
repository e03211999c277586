export * from './emitter.ts'
export { checkLogger, type Logger, logTo } from './log-output.ts'
export { type OpenTelemetryApi, openTelemetry } from './open-telemetry.ts'
export type { Acquisition, Telemetry } from './telemetry.ts'
