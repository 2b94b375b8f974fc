/**
 * Goal: every fault of the configuration (group I) and of the process (group J) that the design lists has a
 * test whose name begins with the fault's id.
 * Method: searches the names of all tests.
 */
import t from 'tap'
import { filesBelow, withoutComments } from '../source-tree.js'

/** The fault of each id. */
const FAULTS: Readonly<Record<string, string>> = {
  'I-133': 'a valid reload while streams run',
  'I-134': 'an upstream removed, a key rotated, a limit lowered, a port changed',
  'I-136': 'null, blank, NaN, negative and huge values in every field',
  'I-137': 'a placeholder without its variable; a secret file missing or rotated',
  'I-138': 'sluice check on good and bad files',
  'I-139': 'secrets of examples and short ones',
  'I-141': 'a storm of SIGHUPs',
  'J-145': 'the drain deadline with 200 streams',
  'J-146': 'SIGTERM with entries and log lines on their way',
  'J-147': 'a second signal',
  'J-149': 'SIGKILL of the primary',
  'J-150': 'a crash at every start',
  'J-152': 'a heap that is too small',
  'J-154': 'SIGPIPE, SIGUSR1, SIGUSR2, SIGQUIT',
}

const names = filesBelow('test', '.ts')
  .filter(({ path }) => path.endsWith('.test.ts') && !path.startsWith('architecture/'))
  .flatMap(({ text }) => [...withoutComments(text).matchAll(/t\.test\(\s*['`]([^'`]{1,200})/g)])
  .map((match) => match[1] ?? '')

void t.test('each fault of groups I and J is a test', (t) => {
  t.ok(names.length > 500, `${names.length} tests`)
  for (const [id, fault] of Object.entries(FAULTS)) {
    const found = names.some((name) => name.split(': ', 1)[0]?.split(', ').includes(id) === true)
    t.ok(found, `${id}: ${fault}`)
  }
  t.end()
})
