import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const FOLDER = new URL('../peers/', import.meta.url)

/**
 * A library that we are measured against, from bench/peers. They are kept out of the product's
 * dependencies, and are installed the first time that one is wanted. Their types do not matter here.
 */
// biome-ignore lint/suspicious/noExplicitAny: the libraries are not there when this is compiled.
export async function peer(name: string): Promise<any> {
  if (!isInstalled()) install()
  const { load } = await import(new URL('load.js', FOLDER).href)
  return load(name)
}

/** As they are locked now, that is: the lock may be newer than what was installed. */
function isInstalled(): boolean {
  const [locked, installed] = ['package-lock.json', 'node_modules/.package-lock.json'].map((name) =>
    statSync(new URL(name, FOLDER), { throwIfNoEntry: false }),
  )
  return installed !== undefined && installed.mtimeMs >= locked!.mtimeMs
}

function install(): void {
  process.stderr.write('installing the libraries to compare with, in bench/peers …\n')
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
