import { type EngineSpec, findProgram } from './engine.ts'

/** nginx with a configuration file. It listens on the port of the engine if the file says so. */
export function nginx(config: (folder: string, port: number) => string): EngineSpec {
  return {
    name: 'nginx',
    program: findProgram('nginx', ['/usr/sbin']),
    // Its child processes end with it, also if it is killed.
    args: (folder, port) =>
      [
        ['-p', folder, '-c', config(folder, port), '-e', 'stderr'],
        ['-g', `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr notice;`],
      ].flat(),
    ready: /using the "epoll" event method|start worker process/,
  }
}
