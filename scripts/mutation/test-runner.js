// A test runner for Stryker that runs the tests in its own process and keeps the modules loaded
// between mutants. Stryker's runner for vitest starts a worker and loads every module again for
// each mutant, which takes far longer than the tests. The tests use vitest as usual: its `expect`,
// and the functions of @vitest/runner that run a file.
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

/** A test that is idle for this many ticks waits for something that never happens. */
const TICK_MS = 100
const IDLE_TICKS = 15
/** A tick with less work than this is idle: it is the work of the tick itself. */
const IDLE_MS = 5
/** The limits of loop iterations and calls, relative to a run without a mutant. */
const ROUNDS_MIN = 20_000
const ROUNDS_MAX = 10_000_000
const ROUNDS_FACTOR = 2
const SETTLE_MS = 30

/** A file in the sandbox with the costs of each test without a mutant. */
const USUAL = 'usual.json'

const loops = new LoopCount()
globalThis.loopCount__ = loops

class TestRunner {
  #files = []
  #modules
  #startTests
  #getFn
  /** The cost of each test without a mutant, which another process has measured. */
  #usual = new Map()
  /** The tests in each suite, by the id of the suite's hooks. */
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
    // Vitest reads this on import; usually its worker sets it.
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
      // Node 20 does not support `await using`.
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

  /**
   * Finds a test that fails on its second run in one process: it would notice almost every mutant.
   */
  async #failsAgain() {
    const { tests = [] } = await this.#run(this.#files)
    const failed = tests.find(({ status }) => status === TestStatus.Failed)
    return failed && `${failed.id} fails when it runs again: ${failed.failureMessage}`
  }

  async mutantRun(options) {
    // Not at the start: other processes start before the first one has finished the dry run.
    if (this.#usual.size === 0) this.#usual = new Map(JSON.parse(readFileSync(USUAL, 'utf8')))
    const result = await this.#runMutant(options)
    if (result.status !== 'survived' || this.#uncaught.length === 0) return result
    // The previous mutant may have thrown late: only an error that occurs twice counts.
    const again = await this.#runMutant(options)
    if (again.status !== 'survived' || this.#uncaught.length === 0) return again
    const failureMessage = `thrown outside a test: ${this.#uncaught[0]}`
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

  /** Runs these files, or the wanted tests in them, until one test fails. */
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
        // If loading or a hook failed, count it as a failure of the first test.
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

/** The interface that @vitest/runner needs, for one run of one file. */
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
  /** The id of the test that did not end. */
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

  /** Always loads the file again, because its tests must be declared again. */
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
    if (this.#mutant) return this.#withLimits(this.#usual.get(id), id, fn)
    loops.start(Infinity)
    const start = performance.now()
    await fn()
    this.#usual.set(id, { ms: performance.now() - start, rounds: loops.count })
  }

  /**
   * Measures neither time nor processor use: on a busy machine the process gets little of the
   * processor, and everything takes long. An event loop with work counts as active, even while the
   * process waits for a core.
   */
  async #withLimits(usual, id, fn) {
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
        // Until the next test starts, every loop and call fails, which ends remaining work.
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
      } else {
        // The limit of the previous test does not apply to hooks, which run between tests.
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

/** The hooks of a suite count for all its tests: see `withHooks`. */
function hooksOf(suite) {
  return `hooks of ${idOf(suite)}`
}

/**
 * Assigns the code that hooks run to the tests of their suite. Otherwise Stryker would treat it as
 * code that runs on load, and try its mutants with every test.
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

/** The first error outside the tests: on load, or in a hook of any suite. */
function failureOf(task) {
  if (task.type === 'test') return undefined
  return task.result?.errors?.[0] ?? task.tasks.map(failureOf).find(Boolean)
}

/** Skips unwanted tests, and the hooks of suites without a wanted test. */
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
