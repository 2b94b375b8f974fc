/**
 * A process that sends many concurrent sign-ins with wrong passwords and prints their statuses. It runs at
 * the lowest priority, since real clients would have machines of their own.
 */
import { setPriority } from 'node:os'
import { Browser } from '../../dashboard/fixtures/stage.js'

setPriority(19)
const [origin = '', people = '1'] = process.argv.slice(2)
const statuses = await Promise.all(
  Array.from({ length: Number(people) }, async (_unused, at) => {
    const { status } = await new Browser(origin).signIn(`user-${at}@example.com`, 'guessed it')
    return status
  }),
)
process.stdout.write(JSON.stringify(statuses))
