export { serveEureka } from './eureka-gateway.ts'
