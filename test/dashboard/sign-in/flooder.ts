/**
 * A process that signs in as so many people at once, with wrong passwords, and says what they were told. They
 * would have machines of their own: it takes what the gateway leaves of this one.
 */
import { setPriority } from 'node:os'
import { Browser } from '../fixtures/stage.js'

setPriority(19)
const [origin = '', people = '1'] = process.argv.slice(2)
const statuses = await Promise.all(
  Array.from({ length: Number(people) }, async (_unused, at) => {
    const { status } = await new Browser(origin).signIn(`somebody-${at}@example.com`, 'guessed it')
    return status
  }),
)
process.stdout.write(JSON.stringify(statuses))
