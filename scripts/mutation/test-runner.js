// A test runner for Stryker that runs the tests in its own process and keeps the modules loaded from
// one mutant to the next. Stryker's runner for vitest starts a worker and loads every module again
// for each mutant, which takes far longer than the tests do. The tests use vitest as usual: its
// `expect`, and the functions of @vitest/runner that run a file.
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin'
import {
  DryRunStatus,
  determineHitLimitReached,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner'
import { createServer, createServerModuleRunner } from 'vite'
import { countLoops, LoopCount } from './count-loops.js'
import { resolveOptions } from './resolve-options.js'

/** A test that does nothing for so many ticks waits for what does not come. */
const TICK_MS = 100
const IDLE_TICKS = 15
/** A tick in which the event loop worked for less than this is idle: it is the tick itself. */
const IDLE_MS = 5
/** How much more than without a mutant a test may do, in rounds of loops and calls. */
const ROUNDS_MIN = 20_000
const ROUNDS_MAX = 10_000_000
const ROUNDS_FACTOR = 2
const SETTLE_MS = 30

/** In the sandbox. */
const USUAL = 'usual.json'

const loops = new LoopCount()
globalThis.loopCount__ = loops

class TestRunner {
  #files = []
  #modules
  #startTests
  #getFn
  /** What each test took without a mutant. Mutants run in other processes than the tests alone. */
  #usual = new Map()
  /** The tests in each suite, by what stands for the suite's hooks. */
  #suites = new Map()
  #loadedWithMutant = false
  #uncaught = []

  capabilities() {
    return { reloadEnvironment: true }
  }

  async init() {
    const root = process.cwd()
    this.#files = JSON.parse(process.env.MUTATION_TESTS).map((file) => resolve(root, file))
    process.on('uncaughtException', (error) => this.#uncaught.push(error))
    process.on('unhandledRejection', (error) => this.#uncaught.push(error))
    // What vitest reads when it is imported; usually its worker sets it.
    globalThis.__vitest_worker__ = workerState()
    await import('vitest')
    const { startTests, getFn } = await import('@vitest/runner')
    this.#startTests = startTests
    this.#getFn = getFn
    const server = await createServer({
      configFile: false,
      root,
      ...resolveOptions(root),
      plugins: [countLoops],
      // Node 20 does not know `await using`.
      oxc: { target: 'node20' },
      server: { middlewareMode: true, watch: null, hmr: false, ws: false },
      optimizeDeps: { noDiscovery: true, include: [] },
      appType: 'custom',
      logLevel: 'error',
    })
    this.#modules = createServerModuleRunner(server.environments.ssr, { hmr: false })
  }

  async dryRun() {
    const stryker = strykerGlobal()
    stryker.activeMutant = undefined
    const result = await this.#run(this.#files)
    if (result.status === DryRunStatus.Complete && this.#uncaught.length > 0) {
      return { status: DryRunStatus.Error, errorMessage: String(this.#uncaught[0]) }
    }
    writeFileSync(USUAL, JSON.stringify([...this.#usual]))
    const mutantCoverage = withHooks(stryker.mutantCoverage, this.#suites)
    const failure = process.env.MUTATION_REPEAT && (await this.#failsAgain())
    if (failure) return { status: DryRunStatus.Error, errorMessage: failure }
    return { ...result, mutantCoverage }
  }

  /** A test that fails when it runs again in the same process would notice every mutant but one. */
  async #failsAgain() {
    const { tests = [] } = await this.#run(this.#files)
    const failed = tests.find(({ status }) => status === TestStatus.Failed)
    return failed && `${failed.id} fails when it runs again: ${failed.failureMessage}`
  }

  async mutantRun(options) {
    // Not at the start: with several processes, the others start before one has run the tests alone.
    if (this.#usual.size === 0) this.#usual = new Map(JSON.parse(readFileSync(USUAL, 'utf8')))
    const result = await this.#runMutant(options)
    if (result.status !== 'survived' || this.#uncaught.length === 0) return result
    // It may be the mutant before that threw late: only what happens twice counts.
    const again = await this.#runMutant(options)
    if (again.status !== 'survived' || this.#uncaught.length === 0) return again
    const failureMessage = `thrown outside of a test: ${this.#uncaught[0]}`
    return { status: 'killed', killedBy: [], failureMessage, nrOfTests: again.nrOfTests }
  }

  async #runMutant({ activeMutant, mutantActivation, testFilter, hitLimit }) {
    const stryker = strykerGlobal()
    const atLoad = mutantActivation === 'static'
    if (atLoad || this.#loadedWithMutant) this.#modules.clearCache()
    this.#loadedWithMutant = atLoad
    this.#uncaught = []
    loops.start(ROUNDS_MAX)
    stryker.activeMutant = atLoad ? activeMutant.id : undefined
    stryker.hitCount = 0
    stryker.hitLimit = hitLimit
    const wanted = testFilter && new Set(testFilter)
    const files = this.#files.filter((file) => !wanted || testFilter.some((id) => inFile(id, file)))
    const result = await this.#run(files, { wanted, activeMutant: activeMutant.id })
    const hitCount = stryker.hitCount
    stryker.activeMutant = undefined
    stryker.hitLimit = undefined
    return toMutantRunResult(determineHitLimitReached(hitCount, hitLimit) ?? result)
  }

  /** Runs these files, or the wanted tests in them, until one fails. */
  async #run(files, mutant) {
    const tests = []
    for (const file of files) {
      const run = new FileRun(this.#modules, this.#getFn, this.#usual, this.#suites, mutant)
      const [task] = await this.#startTests([{ filepath: file, testLocations: undefined }], run)
      if (run.endless !== undefined) return { status: DryRunStatus.Timeout, reason: run.endless }
      const found = testsIn(task).filter(({ result }) => result && result.state !== 'skip')
      tests.push(...found.map(toResult))
      const failure = failureOf(task)
      if (failure && !found.some(({ result }) => result.state === 'fail')) {
        if (!mutant) return { status: DryRunStatus.Error, errorMessage: failure.stack }
        // It could not be loaded, or a hook failed: as if its first test had failed.
        const id = mutant.wanted && [...mutant.wanted].find((each) => inFile(each, file))
        const status = TestStatus.Failed
        tests.push({
          id: id ?? file,
          name: file,
          timeSpentMs: 0,
          status,
          failureMessage: `${failure.message}`,
        })
      }
      if (mutant && tests.some(({ status }) => status === TestStatus.Failed)) break
    }
    return { status: DryRunStatus.Complete, tests }
  }
}

/** What @vitest/runner asks of its surroundings, for one run of one file. */
class FileRun {
  config = {
    root: process.cwd(),
    setupFiles: [],
    sequence: { seed: 1, hooks: 'stack', setupFiles: 'list', shuffle: false, concurrent: false },
    maxConcurrency: 1,
    testTimeout: 8000,
    hookTimeout: 8000,
    retry: 0,
    tags: [],
  }
  /** Which test did not end. */
  endless
  #modules
  #getFn
  #usual
  #suites
  #mutant
  #failed = false

  constructor(modules, getFn, usual, suites, mutant) {
    this.#modules = modules
    this.#getFn = getFn
    this.#usual = usual
    this.#suites = suites
    this.#mutant = mutant
  }

  /** The file itself is always loaded again: its tests are declared anew. */
  async importFile(file) {
    const module = this.#modules.evaluatedModules.getModuleById(file)
    if (module) this.#modules.evaluatedModules.invalidateModule(module)
    await this.#modules.import(file)
  }

  onCollected([file]) {
    if (this.#mutant?.wanted) skipOthers(file, this.#mutant.wanted)
    if (this.#mutant) strykerGlobal().activeMutant = this.#mutant.activeMutant
  }

  onBeforeRunSuite(suite) {
    if (this.#mutant) return
    this.#suites.set(hooksOf(suite), testsIn(suite).map(idOf))
    strykerGlobal().currentTestId = hooksOf(suite)
  }

  onAfterRunSuite(suite) {
    const outer = suite.suite ?? (suite === suite.file ? undefined : suite.file)
    strykerGlobal().currentTestId = outer && hooksOf(outer)
  }

  onBeforeRunTask(test) {
    if (this.#mutant && this.#failed) test.mode = 'skip'
    if (!this.#mutant) strykerGlobal().currentTestId = idOf(test)
  }

  onAfterRunTask(test) {
    this.#failed ||= test.result?.state === 'fail'
    strykerGlobal().currentTestId = hooksOf(test.suite ?? test.file)
  }

  async runTask(test) {
    const fn = this.#getFn(test)
    const id = idOf(test)
    if (this.#mutant) return this.#within(this.#usual.get(id), id, fn)
    loops.start(Infinity)
    const start = performance.now()
    await fn()
    this.#usual.set(id, { ms: performance.now() - start, rounds: loops.count })
  }

  /**
   * Does not measure how long it takes, nor how much of the processor it uses: on a busy machine the
   * process gets little of it, and everything takes long. A loop that has work counts as working,
   * even while the process waits for its turn.
   */
  async #within(usual, id, fn) {
    let left = IDLE_TICKS + usual.ms / TICK_MS
    let loop = performance.eventLoopUtilization()
    let timer
    const never = new Promise((_, reject) => {
      timer = setInterval(() => {
        const { active } = performance.eventLoopUtilization(loop)
        loop = performance.eventLoopUtilization()
        if (active > IDLE_MS || --left > 0) return
        this.endless = id
        reject(new Error('the test does not end'))
      }, TICK_MS)
    })
    loops.start(ROUNDS_MIN + ROUNDS_FACTOR * usual.rounds)
    try {
      return await Promise.race([fn(), never])
    } finally {
      clearInterval(timer)
      if (loops.exceeded) {
        this.endless = id
        // Until the next test starts, every loop and every call fails: what still goes on ends.
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
      } else {
        // Hooks run between two tests: the limit of the one before is not for them.
        loops.start(ROUNDS_MAX)
      }
    }
  }
}

function strykerGlobal() {
  globalThis.__stryker__ ??= {}
  return globalThis.__stryker__
}

function workerState() {
  const sequence = { hooks: 'stack', setupFiles: 'list' }
  const config = { sequence, expect: {}, poll: {}, fakeTimers: {}, snapshotOptions: {} }
  const environment = { name: 'node' }
  return { config, environment, filepath: '', rpc: {}, ctx: {}, providedContext: {}, metaEnv: {} }
}

function idOf(test) {
  const names = []
  for (let at = test; at && at !== test.file; at = at.suite) names.unshift(at.name)
  return `${test.file.filepath}#${names.join(' ')}`
}

/** What the hooks of a suite run counts for all its tests: see `withHooks`. */
function hooksOf(suite) {
  return `hooks of ${idOf(suite)}`
}

/**
 * What runs outside of a test would count as if it ran when the module is loaded, and its mutants
 * would be tried with every test. What the hooks of a suite run concerns the tests of the suite.
 */
function withHooks({ static: atLoad, perTest }, suites) {
  const all = { ...perTest }
  for (const [hooks, tests] of suites) {
    for (const test of all[hooks] ? tests : []) {
      all[test] = { ...all[test] }
      for (const [mutant, count] of Object.entries(all[hooks])) {
        all[test][mutant] = (all[test][mutant] ?? 0) + count
      }
    }
    delete all[hooks]
  }
  return { static: atLoad, perTest: all }
}

function inFile(id, file) {
  return id.startsWith(`${file}#`)
}

function testsIn(task) {
  return task.type === 'test' ? [task] : task.tasks.flatMap(testsIn)
}

/** What went wrong outside of the tests: when the file was loaded, or in a hook of any suite. */
function failureOf(task) {
  if (task.type === 'test') return undefined
  return task.result?.errors?.[0] ?? task.tasks.map(failureOf).find(Boolean)
}

/** Leaves out the tests that are not wanted, and the hooks of suites of which none is. */
function skipOthers(task, wanted) {
  if (task.type === 'test') {
    if (!wanted.has(idOf(task))) task.mode = 'skip'
  } else {
    for (const each of task.tasks) skipOthers(each, wanted)
    if (task.tasks.every(({ mode }) => mode === 'skip')) task.mode = 'skip'
  }
  return task
}

function toResult(test) {
  const result = {
    id: idOf(test),
    name: test.fullTestName ?? test.name,
    fileName: test.file.filepath,
    timeSpentMs: test.result.duration ?? 0,
  }
  if (test.result.state !== 'fail') return { ...result, status: TestStatus.Success }
  const failureMessage = test.result.errors?.[0]?.message ?? 'failed without a message'
  return { ...result, status: TestStatus.Failed, failureMessage }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'in-process', TestRunner)]
