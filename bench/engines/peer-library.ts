import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const FOLDER = new URL('../../peers/', import.meta.url)

/**
 * Loads a library that we compare with, from bench/peers. These libraries are not dependencies of the
 * product. The first call installs them.
 */
// biome-ignore lint/suspicious/noExplicitAny: the libraries are not there when this is compiled.
export async function loadPeer(name: string): Promise<any> {
  if (!isInstalled()) install()
  const { load } = await import(new URL('load.js', FOLDER).href)
  return load(name)
}

/** False also if the lock file is newer than the installation. */
function isInstalled(): boolean {
  const [locked, installed] = ['package-lock.json', 'node_modules/.package-lock.json'].map((name) =>
    statSync(new URL(name, FOLDER), { throwIfNoEntry: false }),
  )
  return installed !== undefined && installed.mtimeMs >= locked!.mtimeMs
}

function install(): void {
  process.stderr.write('installing the libraries to compare with in bench/peers\n')
  for (let attempt = 1; ; attempt++) {
    const { status } = spawnSync('npm', ['ci', '--silent'], {
      cwd: fileURLToPath(FOLDER),
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    if (status === 0) return
    if (attempt === 4) throw new Error('npm ci in bench/peers failed four times: see above')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, attempt * 10_000)
  }
}
