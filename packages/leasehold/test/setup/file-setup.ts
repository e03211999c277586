import { afterAll } from 'vitest'
import { cleanUp } from './after-file.ts'

// Vitest runs this for each file of tests.
afterAll(cleanUp)
