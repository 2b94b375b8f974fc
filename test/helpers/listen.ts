/** Servers of tests on free ports. */
import type { Server } from 'node:net'
import type { Test } from 'tap'

/** Listens at 127.0.0.1 until the end of the test, which ends the connections of an HTTP server; the port. */
export async function listen(
  t: Pick<Test, 'teardown'>,
  server: Server & { readonly closeAllConnections?: () => void },
): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections?.()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
