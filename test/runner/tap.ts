/**
 * What the compiled tests import as tap: `build/node_modules/tap`, where Node finds it before the package.
 * It is one file, because loading tap's 260 takes more CPU time than most test files; and in a process of
 * several test files (`group.ts`) the default export is the subtest of the file that runs now. `t` is the
 * process's test: for what helpers share among files.
 */
import t, { type Test } from 'tap'

export { t }

/** The test at the top of the file that runs now. */
export const current: { t: Test } = { t }

export default new Proxy<Test>(t, {
  get(_, name) {
    const value: unknown = Reflect.get(current.t, name)
    return typeof value === 'function' ? (value.bind(current.t) as unknown) : value
  },
  set: (_, name, value) => Reflect.set(current.t, name, value),
})
