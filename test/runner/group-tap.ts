/** What a test file of a group imports as tap: loaded once for each file, see `group-hooks.ts`. */
import { currentFile } from './current-file.js'

export default currentFile.t
