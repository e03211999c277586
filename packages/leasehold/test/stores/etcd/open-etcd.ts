import * as grpc from '@grpc/grpc-js'
import { etcdStore } from '../../../src/stores/etcd/index.ts'
import type { OpenStore } from '../../faults/index.ts'

export const openStore: OpenStore = (endpoints) => etcdStore({ grpc, endpoints })
