export { mcpCommand } from './mcp.ts'
