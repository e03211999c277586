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
      `${LIBRARY}/test/kernel/{,tables/,history/}*.test.ts`,
      `${LIBRARY}/test/stores/memory/conformance.test.ts`,
      `${LIBRARY}/test/kernel/model/*.test.ts`,
    ],
  },
  runner: {
    sources: [`${LIBRARY}/src/runner/**/*.ts`],
    tests: [
      `${LIBRARY}/test/runner/*.test.ts`,
      `${LIBRARY}/test/stores/memory/conformance.test.ts`,
      `${LIBRARY}/test/stores/file/log/commit.test.ts`,
      `${LIBRARY}/test/stores/memory/commands.test.ts`,
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
      `${LIBRARY}/test/stores/file/{file-store,damage/forged,log/segment,manifest/manifest,log/log-writer,open/recovery,snapshot/snapshot-file,manifest/checkpoints,log/segment-supply,log/durability,snapshot/compaction}.test.ts`,
      `${LIBRARY}/test/stores/file/{open/upgrade,open/open-files,log/frame,snapshot/snapshot,crash/torn,manifest/reserve,damage/loss,damage/damage,log/commit,log/backlog}.test.ts`,
    ],
  },
  /** The part of the file store that uses the file system; so do its tests. */
  disk: {
    sources: [`${LIBRARY}/src/stores/file/{disk/node-*,folder-copy}.ts`],
    tests: [
      `${LIBRARY}/test/stores/file/{disk/node-disk,disk/owner,disk/owner-faults,disk/owner-system,open/upgrade,open/restore,open/open}.test.ts`,
    ],
  },
  client: {
    sources: [`${LIBRARY}/src/client/**/*.ts`],
    tests: [
      `${LIBRARY}/test/client/{acquire/acquire,store-calls/calls,events/emitter,for-recipes,acquire/full-lease,leases/hold,timers/keep-alive,leases/lease-watch,events/log-output,leases/loss-event,leases/loss-reason,events/open-telemetry,views/prefix-watch,leases/renewals,store-calls/sends,store-calls/store-call,timers/timeouts,timers/timer-queue,leases/timings}.test.ts`,
      `${LIBRARY}/test/client/{close,acquire/shared-lease,process/process-life,leases/loss,events/log-and-telemetry,acquire/shared-lease-limits,store-calls/unknown-outcomes,views/view,views/view-details,acquire/waits}.test.ts`,
      `${LIBRARY}/test/client/{arguments,leases/breaks,leases/break-notices,open-store,open}.test.ts`,
      `${LIBRARY}/test/recipes/lock/lock.test.ts`,
    ],
  },
  recipes: {
    sources: [`${LIBRARY}/src/recipes/{,lock/,values/}*.ts`],
    tests: [
      `${LIBRARY}/test/recipes/{arguments/arguments,values/json,refusals,sleep,lock/inner-lock,lock/lock,lock/stores,adaptive/adaptive-memory,adaptive/adaptive}.test.ts`,
    ],
  },
  cache: {
    sources: [`${LIBRARY}/src/recipes/cache/**/*.ts`],
    tests: [`${LIBRARY}/test/recipes/cache/{cache,changes,calls,stale,stores,limits}.test.ts`],
  },
  election: {
    sources: [`${LIBRARY}/src/recipes/election/**/*.ts`],
    tests: [
      `${LIBRARY}/test/recipes/{election/candidate-queue,election/campaign,election/step-down,election/election,election/stores,leftovers,election/schedules}.test.ts`,
    ],
  },
  pool: {
    sources: [`${LIBRARY}/src/recipes/pool/**/*.ts`],
    tests: [
      `${LIBRARY}/test/recipes/pool/{definition/definition,usage/usage,schedule/order,snapshot,definition/publication,permit,preemption-request,pending-request,schedule/schedule}.test.ts`,
      `${LIBRARY}/test/recipes/pool/{usage/records,use,waits,status,preemption,stores,permits,faults}.test.ts`,
      `${LIBRARY}/test/recipes/{leftovers,adaptive/adaptive}.test.ts`,
    ],
  },
  registry: {
    sources: [`${LIBRARY}/src/recipes/registry/**/*.ts`],
    tests: [
      `${LIBRARY}/test/recipes/registry/{check/rules,entries,discovery/choice,check/address,registration/reports,registration/updates,discovery/watch,discovery/lapsed,discovery/unseen,registration/presence,registration/return,checker/health-results,checker/checker,checker/check-schedule,checker/checked,registration/nodes,brake,checker/checks,discovery/pick}.test.ts`,
      `${LIBRARY}/test/recipes/registry/{registry,stores,checker/stores,registration/many-nodes}.test.ts`,
      `${LIBRARY}/test/recipes/leftovers.test.ts`,
    ],
  },
  session: {
    sources: [`${LIBRARY}/src/recipes/session/**/*.ts`],
    tests: [`${LIBRARY}/test/recipes/session/{activity,stores,web-store,table,session}.test.ts`],
  },
  remote: {
    sources: [`${LIBRARY}/src/stores/remote/**/*.ts`],
    tests: [
      `${LIBRARY}/test/stores/remote/call-ring.test.ts`,
      `${LIBRARY}/test/stores/remote/{messages,frames,open,streams,calls,flow}.test.ts`,
      `${LIBRARY}/test/stores/remote/web-socket.test.ts`,
      `${SERVER}/test/remote/web-socket.test.ts`,
      `${LIBRARY}/test/stores/remote/{web-socket-pressure,many-calls}.test.ts`,
    ],
  },
  access: {
    sources: [`${SERVER}/src/access/**/*.ts`],
    tests: [
      `${SERVER}/test/access/{rights,identity/credentials,quotas/account,quotas/accounts,guard/guarded-watch,guard/guarded-store}.test.ts`,
      `${SERVER}/test/access/{admission,limited-audit,identity/access-tokens,guard/guarded-calls,access,at-once,quotas/quota}.test.ts`,
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
      `${SERVER}/test/http/{openapi/published,responses/event-stream,requests/waits/settlement,requests/waits/waits,requests/idempotency/repeated-requests,responses/responses,routes/durations,requests/validation,routes/handlers,requests/principal-session}.test.ts`,
      `${SERVER}/test/http/{responses/problem,openapi/description,routes/recipes,routes/missing-rights,routes/operations}.test.ts`,
      `${SERVER}/test/http/{routes/locks,routes/recipe-details,routes/events,requests/waits/many-waits,api,hostile}.test.ts`,
      `${SERVER}/test/http/{ended-token,requests/idempotency/idempotency}.test.ts`,
    ],
  },
}
