export { type DnsGateway, type DnsGatewayOptions, startDnsGateway } from './dns-gateway.ts'
