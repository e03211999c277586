export {
  type GatewayDependencies,
  type GatewayOptions,
  type Gateways,
  startGateways,
} from './gateways.ts'
