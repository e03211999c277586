import { CODE, create, getChildren, getData, remove } from './requests.ts'
import type { ZookeeperClient } from './zookeeper-client.ts'

/** Access to the children of a node by name. Each is put once and never changed. */
export function folderAt(client: ZookeeperClient, path: string) {
  return {
    names: () => client.call(getChildren(path)),
    put: (name: string, bytes: Uint8Array) =>
      client.unless(create(`${path}/${name}`, bytes, client.access), CODE.nodeExists),
    get: async (name: string) =>
      (await client.unless(getData(`${path}/${name}`), CODE.noNode))?.data,
    remove: (name: string) => client.unless(remove(`${path}/${name}`), CODE.noNode),
  }
}
