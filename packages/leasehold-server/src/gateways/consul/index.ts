export {
  type ConsulGateway,
  type ConsulGatewayOptions,
  startConsulGateway,
} from './consul-gateway.ts'
