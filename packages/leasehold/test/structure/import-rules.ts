import { posix } from 'node:path'
import { isNode, lineAt, parse, readSource, type SourceFile, walk } from './source-files.ts'

/**
 * The layers, and which of them each may import. Imports point downwards only.
 *
 * `testing` is beside the others: it tests stores at the port and runs them with its own clock, so
 * it may import the stores and the layers below. It may not import the client, because authors of
 * stores should not have to load one. No published code may import `testing`. `fence` is beside the
 * others too: it protects the resource, which knows tokens but neither stores nor clients. Holders
 * of leases do not need it. `engines` opens logs by their addresses, and loads their npm clients.
 * `probes` uses the network for the recipes, which do not use Node's modules.
 */
const MAY_KNOW: Record<string, readonly string[]> = {
  port: [],
  kernel: ['port'],
  log: ['port'],
  encoding: ['port', 'kernel'],
  runner: ['port', 'kernel'],
  replica: ['port', 'kernel', 'log', 'encoding', 'runner'],
  stores: ['port', 'kernel', 'encoding', 'runner', 'replica', 'log'],
  logs: ['port', 'log', 'replica', 'stores'],
  engines: ['port', 'log', 'replica', 'logs'],
  client: ['port', 'stores'],
  open: ['port', 'stores', 'engines', 'client'],
  adaptive: ['port'],
  recipes: ['port', 'client', 'adaptive'],
  fence: ['port'],
  probes: ['port', 'recipes'],
  testing: ['port', 'kernel', 'log', 'runner', 'replica', 'stores'],
  // The files at the top: the main class, its functions for small bundles, and the exports.
  '': ['port', 'stores', 'client', 'open', 'adaptive', 'recipes', 'probes'],
}

/** The optional peers, which are loaded only if they are needed and installed. */
const PEERS = Object.keys(
  JSON.parse(readSource('packages/leasehold/package.json').text).peerDependencies,
)

/** Layers that must run anywhere and the same way every time: no part of Node is for them. */
const PURE = ['kernel', 'log', 'runner', 'replica', 'adaptive', 'recipes']

export interface Import {
  readonly specifier: string
  readonly line: number
}

export function importsOf(file: SourceFile): Import[] {
  const found: Import[] = []
  walk(parse(file), (node) => {
    const source = node['source'] ?? (node.type === 'TSImportType' && node['argument'])
    if (!isNode(source)) return undefined
    const value = isNode(source['literal']) ? source['literal']['value'] : source['value']
    if (typeof value === 'string') {
      found.push({ specifier: value, line: lineAt(file.text, node.start) })
    } else if (node.type === 'ImportExpression') {
      found.push({ specifier: '(computed)', line: lineAt(file.text, node.start) })
    }
    return undefined
  })
  return found
}

/** The faults in the imports of one source file. `src` is the folder of the sources. */
export function importFaults(file: SourceFile, src: string): string[] {
  const from = placeOf(posix.relative(src, file.path))
  return importsOf(file).flatMap(({ specifier, line }) => {
    const fault = faultOf(file, src, from, specifier)
    return fault ? [`${file.path}:${line} imports ${specifier}: ${fault}`] : []
  })
}

function faultOf(
  file: SourceFile,
  src: string,
  from: Place,
  specifier: string,
): string | undefined {
  if (specifier.startsWith('node:')) {
    return PURE.includes(from.layer) ? `${from.layer} does without Node's modules` : undefined
  }
  // The client of an engine, which users install themselves.
  if (specifier === '(computed)' && file.path === `${src}/engines/load-package.ts`) return undefined
  if (PEERS.includes(specifier)) return undefined
  if (!specifier.startsWith('.')) return 'the library depends on no package'
  if (!specifier.endsWith('.ts')) return 'write the extension .ts'
  const target = posix.relative(src, posix.join(posix.dirname(file.path), specifier))
  if (target.startsWith('..')) return 'it lies outside of the sources'
  const to = placeOf(target)
  const client = /^logs\/[^/]+\/client\//.exec(posix.relative(src, file.path))?.[0]
  if (client && to.layer !== 'port' && !target.startsWith(client)) {
    return 'the client of an engine knows the port alone'
  }
  if (to.layer === from.layer) {
    const isOther = from.layer === 'stores' && to.room !== from.room
    return isOther ? 'stores never know each other' : undefined
  }
  if (!MAY_KNOW[from.layer]?.includes(to.layer)) {
    return `${from.layer || 'the top'} must not know ${to.layer || 'the top'}`
  }
  // The log of an engine speaks to it as the store on the same engine does.
  if (from.layer === 'logs' && to.layer === 'stores' && from.room === to.room) return undefined
  return to.file === 'index.ts' ? undefined : 'enter another folder by its index.ts'
}

/** The faults in the imports of one file of the server. `allowed` are the server's dependencies. */
export function serverImportFaults(file: SourceFile, allowed: readonly string[]): string[] {
  return importsOf(file).flatMap(({ specifier, line }) => {
    const fault = serverFaultOf(file, specifier, allowed)
    return fault ? [`${file.path}:${line} imports ${specifier}: ${fault}`] : []
  })
}

function serverFaultOf(
  file: SourceFile,
  specifier: string,
  allowed: readonly string[],
): string | undefined {
  if (specifier.startsWith('node:')) return undefined
  if (specifier.startsWith('.')) {
    if (!specifier.endsWith('.ts')) return 'write the extension .ts'
    const target = posix.join(posix.dirname(file.path), specifier)
    const isInside = target.startsWith('packages/leasehold-server/src/')
    return isInside ? undefined : 'it lies outside of the sources'
  }
  if (/^leasehold(\/[a-z]+)?$/.test(specifier)) return undefined
  if (specifier.startsWith('leasehold/')) return 'use the public subpaths of the library'
  // The demo fleet beside the sources, which the dashboard loads on demand.
  if (specifier === '#demo') return undefined
  const [name] = /^(@[^/]+\/)?[^/]+/.exec(specifier)!
  return allowed.includes(name) ? undefined : 'it is no dependency of the server'
}

interface Place {
  readonly layer: string
  /** The folder within the layer: the name of the store. */
  readonly room: string
  readonly file: string
}

function placeOf(path: string): Place {
  const parts = path.split('/')
  const file = parts.pop()!
  return { layer: parts[0] ?? '', room: parts[1] ?? '', file }
}
