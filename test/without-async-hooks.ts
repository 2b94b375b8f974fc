/**
 * Loaded before each test file by `run.ts`. tap follows every promise and socket of a process, to name the
 * subtest of an uncaught error; that takes a tenth of the CPU time. Without it such an error ends the file.
 */
import hooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

const none = { enable: () => none, disable: () => none }
hooks.createHook = () => none
syncBuiltinESMExports()
