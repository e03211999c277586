export { startXdsGateway, type XdsGateway, type XdsGatewayOptions } from './xds-gateway.ts'
