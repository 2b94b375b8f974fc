/** The subtest of the file that a group imports now. */
import t, { type Test } from 'tap'

export const currentFile: { t: Test } = { t }
