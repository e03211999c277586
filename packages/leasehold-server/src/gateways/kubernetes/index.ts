export { type KubernetesGateway, serveKubernetesLeases } from './kubernetes-gateway.ts'
