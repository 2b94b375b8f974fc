/** What the scripts of a test import to open a store in a process of their own. */
export { openStore } from '../../../src/store/open-store.js'
