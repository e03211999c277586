import { milliseconds } from 'leasehold/port'
import { DEFAULT_HOST, DEFAULT_PORT } from '../server.ts'
import { DEFAULT_STREAM } from '../stream/options.ts'
import { Complaint, type Setting } from './setting.ts'

export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const
/** What is written instead of a file's name where there shall be none. */
export const NONE = 'none'

/** From nowhere to everywhere: each allows for what those before it do. */
export const CHECKS = ['off', 'public', 'private', 'loopback'] as const

/** All that `leasehold serve` can be told. */
export const SETTINGS = {
  store: {
    flag: '--store <url>',
    help: "what to serve: 'file:<folder>', durable; 'memory:'; or an engine that several servers may share, 'redis://…', 'redis+sentinel://…', 'postgres://…', 'etcd://…', 'zookeeper://…', 'nats://…' or 'azure+https://…'",
    otherwise: 'file:./data',
    read: nonEmpty,
  },
  host: {
    flag: '--host <address>',
    help: 'the address to listen on',
    otherwise: DEFAULT_HOST,
    read: nonEmpty,
  },
  port: {
    flag: '--port <number>',
    help: 'the port to listen on, 0 for any that is free',
    otherwise: String(DEFAULT_PORT),
    read: (text) => integer(text, 0, 65_535),
  },
  tlsCert: {
    flag: '--tls-cert <file>',
    help: "the server's certificate chain in PEM: turns on TLS, together with --tls-key",
    inWords: 'no TLS',
    read: nonEmpty,
  },
  tlsKey: {
    flag: '--tls-key <file>',
    help: 'the private key of the certificate, in PEM',
    read: nonEmpty,
  },
  tlsCa: {
    flag: '--tls-ca <file>',
    help: 'turns on mutual TLS: only clients with a certificate that these authorities (PEM) have signed are let in, and its common name says whose token it stands for',
    inWords: 'no mutual TLS',
    read: nonEmpty,
  },
  audit: {
    flag: '--audit <file>',
    help: `where to write down, as lines of JSON, what is done by force and what is refused; '${NONE}' for nowhere`,
    inWords: 'audit.log in the folder of the data; nowhere for any other store',
    read: nonEmpty,
  },
  secretsKeyFile: {
    flag: '--secrets-key-file <file>',
    help: 'the key of lease secrets, 32 bytes or more in base64: the same for all servers on one store',
    inWords:
      'secrets.key in the folder of the data, made at the first start; a new one at each start for any other store',
    read: nonEmpty,
  },
  insecureOpenNetwork: {
    flag: '--insecure-open-network',
    help: 'listens beyond this machine although there is no TLS, or neither a token nor mutual TLS: whoever can reach the port can then read, take and end every lease, or listen in',
    otherwise: 'false',
    read: boolean,
  },
  checks: {
    flag: '--checks <where>',
    help: `where health checks of registered instances may go: ${CHECKS.join(', ')}; link-local and metadata addresses never`,
    otherwise: 'public',
    read: oneOf(CHECKS),
  },
  connections: {
    flag: '--connections <number>',
    help: 'streams at a time; more are turned away with 503',
    otherwise: String(DEFAULT_STREAM.connections),
    read: (text) => integer(text, 1, 1_000_000),
  },
  drain: {
    flag: '--drain <duration>',
    help: 'how long a server that stops waits for what is under way',
    otherwise: '5s',
    read: duration,
  },
  logLevel: {
    flag: '--log-level <level>',
    help: `what to write to standard error, as lines of JSON: ${LOG_LEVELS.join(', ')}`,
    otherwise: 'warn',
    read: oneOf(LOG_LEVELS),
  },
} as const satisfies Record<string, Setting<unknown>>

export type SettingName = keyof typeof SETTINGS

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[]

/** Where the file is that has the rest. It cannot name itself. */
export const CONFIG_FLAG: Setting<string> = {
  flag: '--config <file>',
  help: 'a file of JSON with any of these by their names in camelCase; flags and environment come before it',
  inWords: './leasehold.json where there is one',
  read: nonEmpty,
}

function nonEmpty(text: string): string {
  if (text !== '') return text
  throw new Complaint('it must not be empty')
}

function integer(text: string, min: number, max: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new Complaint(`it must be an integer from ${min} to ${max}`)
}

function boolean(text: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  throw new Complaint('it must be true or false')
}

function duration(text: string): number {
  try {
    const value = milliseconds(/^\d+$/.test(text) ? Number(text) : (text as '5s'), 'it')
    if (value < Infinity) return value
  } catch {
    // What it must be is the same.
  }
  throw new Complaint("it must be a duration such as '5s' or '500ms'")
}

function oneOf<Word extends string>(words: readonly Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((each) => each === text)
    if (word !== undefined) return word
    throw new Complaint(`it must be one of ${words.join(', ')}`)
  }
}
