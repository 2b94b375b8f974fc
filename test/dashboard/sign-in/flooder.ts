/**
 * A process that makes many concurrent sign-ins with wrong passwords, and prints their statuses. They
 * would have machines of their own: it takes what the gateway leaves of this one.
 */
import { setPriority } from 'node:os'
import { Browser } from '../fixtures/stage.js'

setPriority(19)
const [origin = '', people = '1'] = process.argv.slice(2)
const statuses = await Promise.all(
  Array.from({ length: Number(people) }, async (_unused, at) => {
    const { status } = await new Browser(origin).signIn(`user-${at}@example.com`, 'guessed it')
    return status
  }),
)
process.stdout.write(JSON.stringify(statuses))
