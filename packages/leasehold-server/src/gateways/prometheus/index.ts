export { servePrometheusTargets } from './prometheus-gateway.ts'
