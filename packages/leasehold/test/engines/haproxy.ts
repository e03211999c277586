import { type EngineSpec, findProgram } from './engine.ts'

/** HAProxy with a configuration file. It listens on the port of the engine if the file says so. */
export function haproxy(config: (folder: string, port: number) => string): EngineSpec {
  return {
    name: 'haproxy',
    program: findProgram('haproxy', ['/usr/sbin']),
    // In the foreground; it says that it is ready only in this mode.
    args: (folder, port) => ['-W', '-db', '-f', config(folder, port)],
    ready: /Loading success/,
  }
}
