import { type EngineSpec, findProgram } from './engine.ts'

/** Prometheus with a configuration file. */
export function prometheus(config: (folder: string) => string): EngineSpec {
  return {
    name: 'prometheus',
    program: findProgram('prometheus'),
    args: (folder, port) => [
      ...['--config.file', config(folder), '--storage.tsdb.path', `${folder}/data`],
      ...['--web.listen-address', `127.0.0.1:${port}`],
    ],
    ready: /Server is ready to receive web requests/,
  }
}
