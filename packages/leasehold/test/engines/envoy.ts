import { type EngineSpec, findBuilt } from './engine.ts'

/** Envoy with a configuration file. It listens on the port of the engine if the file says so. */
export function envoy(config: (folder: string, port: number) => string): EngineSpec {
  return {
    name: 'envoy 1.40',
    program: findBuilt('envoy'),
    builtWith: 'pip3',
    // Without shared memory, so that several can run.
    args: (folder, port) =>
      [
        ['-c', config(folder, port), '--disable-hot-restart', '--concurrency', '1'],
        ['--log-level', 'info'],
      ].flat(),
    ready: /starting main dispatch loop/,
  }
}
