const LIBRARY = 'packages/leasehold'
const SERVER = 'packages/leasehold-server'

/**
 * The sources and tests of each folder. The tests run in the process on a simulated clock, cheapest
 * first. Tests that start processes or wait in real time are left out, because a surviving mutant
 * runs all tests.
 */
export const FOLDERS = {
  port: {
    sources: [`${LIBRARY}/src/port/**/*.ts`],
    tests: [`${LIBRARY}/test/port/*.test.ts`],
  },
  kernel: {
    sources: [`${LIBRARY}/src/kernel/**/*.ts`],
    tests: [
      `${LIBRARY}/test/kernel/*.test.ts`,
      `${LIBRARY}/test/stores/memory.test.ts`,
      `${LIBRARY}/test/kernel-model/*.test.ts`,
    ],
  },
  runner: {
    sources: [`${LIBRARY}/src/runner/**/*.ts`],
    tests: [
      `${LIBRARY}/test/runner/*.test.ts`,
      `${LIBRARY}/test/stores/memory.test.ts`,
      `${LIBRARY}/test/file/log/commit.test.ts`,
      `${LIBRARY}/test/stores/memory-commands.test.ts`,
      `${LIBRARY}/test/concurrent/memory.test.ts`,
    ],
  },
  file: {
    sources: [
      `${LIBRARY}/src/stores/file/{checkpoints,damage,file-durability,file-store,manifest,recovery}.ts`,
      `${LIBRARY}/src/stores/file/{log,snapshot}/*.ts`,
      `${LIBRARY}/src/stores/file/disk/disk.ts`,
    ],
    tests: [
      `${LIBRARY}/test/file/{file-store,damage/forged,log/segment,manifest/manifest,log/log-writer,open/recovery,snapshot/snapshot-file,manifest/checkpoints,log/segment-supply,log/durability,snapshot/compaction}.test.ts`,
      `${LIBRARY}/test/file/{open/upgrade,open/open-files,log/frame,snapshot/snapshot,crash/torn,manifest/reserve,damage/loss,damage/damage,log/commit,log/backlog}.test.ts`,
    ],
  },
  /** The part of the file store that uses the file system; so do its tests. */
  disk: {
    sources: [`${LIBRARY}/src/stores/file/{disk/node-*,folder-copy}.ts`],
    tests: [
      `${LIBRARY}/test/file/{disk/node-disk,disk/owner,disk/owner-faults,disk/owner-system,open/upgrade,open/restore,open/open}.test.ts`,
    ],
  },
  client: {
    sources: [`${LIBRARY}/src/client/**/*.ts`],
    tests: [
      `${LIBRARY}/test/client/{acquire,calls,emitter,for-recipes,full-lease,hold,keep-alive,lease-watch,log-output,loss-event,loss-reason,open-telemetry,prefix-watch,renewals,sends,store-call,timeouts,timer-queue,timings}.test.ts`,
      `${LIBRARY}/test/client/{close,shared-lease,process-life,loss,log-and-telemetry,shared-lease-limits,unknown-outcomes,view,view-details,waits}.test.ts`,
      `${LIBRARY}/test/client/{arguments,breaks,break-notices,open-store,open}.test.ts`,
      `${LIBRARY}/test/recipes/lock.test.ts`,
    ],
  },
  recipes: {
    sources: [`${LIBRARY}/src/recipes/*.ts`],
    tests: [
      `${LIBRARY}/test/recipes/{arguments,json,refusals,sleep,inner-lock,lock,lock-stores,adaptive-memory,adaptive}.test.ts`,
    ],
  },
  cache: {
    sources: [`${LIBRARY}/src/recipes/cache/**/*.ts`],
    tests: [
      `${LIBRARY}/test/recipes/{cache,cache-changes,cache-calls,cache-stale,cache-stores,cache-limits}.test.ts`,
    ],
  },
  election: {
    sources: [`${LIBRARY}/src/recipes/election/**/*.ts`],
    tests: [
      `${LIBRARY}/test/recipes/{election-candidate-queue,election-campaign,election-step-down,election,election-stores,leftovers,election-schedules}.test.ts`,
    ],
  },
  pool: {
    sources: [`${LIBRARY}/src/recipes/pool/**/*.ts`],
    tests: [
      `${LIBRARY}/test/recipes/pool-{definition,usage,order,snapshot,publication,permit,preemption-request,pending-request,schedule}.test.ts`,
      `${LIBRARY}/test/recipes/pool-{usage-records,use,waits,status,preemption,stores,permits,faults}.test.ts`,
      `${LIBRARY}/test/recipes/{leftovers,adaptive}.test.ts`,
    ],
  },
  registry: {
    sources: [`${LIBRARY}/src/recipes/registry/**/*.ts`],
    tests: [
      `${LIBRARY}/test/recipes/registry-{rules,entries,choice,address,reports,updates,watch,lapsed,unseen,presence,return,health-results,checker,check-schedule,checked,nodes,brake,checks,pick}.test.ts`,
      `${LIBRARY}/test/recipes/registry{,-stores,-checks-stores,-many-nodes}.test.ts`,
      `${LIBRARY}/test/recipes/leftovers.test.ts`,
    ],
  },
  session: {
    sources: [`${LIBRARY}/src/recipes/session/**/*.ts`],
    tests: [
      `${LIBRARY}/test/recipes/{session-activity,session-stores,web-store,session-table,session}.test.ts`,
    ],
  },
  remote: {
    sources: [`${LIBRARY}/src/stores/remote/**/*.ts`],
    tests: [
      `${LIBRARY}/test/stores/call-ring.test.ts`,
      `${LIBRARY}/test/stores/remote/{messages,frames,open,streams,calls,flow}.test.ts`,
      `${LIBRARY}/test/stores/remote/web-socket.test.ts`,
      `${SERVER}/test/web-socket.test.ts`,
      `${LIBRARY}/test/stores/remote/{web-socket-pressure,many-calls}.test.ts`,
    ],
  },
  access: {
    sources: [`${SERVER}/src/access/**/*.ts`],
    tests: [
      `${SERVER}/test/access/{rights,credentials,account,accounts,guarded-watch,guarded-store}.test.ts`,
      `${SERVER}/test/access/{admission,limited-audit,access-tokens,guarded-calls,access,at-once,quota}.test.ts`,
      `${SERVER}/test/access/every-right.test.ts`,
    ],
  },
  stream: {
    sources: [`${SERVER}/src/stream/**/*.ts`],
    tests: [
      `${SERVER}/test/stream/{messages,parts,connection,flow,drain,fair-turns,upgrade}.test.ts`,
    ],
  },
  http: {
    sources: [`${SERVER}/src/http/**/*.ts`],
    tests: [
      `${SERVER}/test/http/{published,event-stream,settlement,waits,repeated-requests,responses,durations,validation,handlers,principal-session}.test.ts`,
      `${SERVER}/test/http/{problem,description,recipes,missing-rights,operations}.test.ts`,
      `${SERVER}/test/http/{locks,recipe-details,events,many-waits,api,hostile}.test.ts`,
      `${SERVER}/test/http/{ended-token,idempotency}.test.ts`,
    ],
  },
}
