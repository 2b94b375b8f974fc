/**
 * The address that a request of the dashboard is counted for and that the audit trail names: one function, so
 * that trusted proxies have one place to be read.
 */
import type { Request } from '../http/request.js'
import type { Response } from '../http/response.js'

/** The client's address as text. Never throws. */
export type ClientAddress = (req: Request, res: Response) => string

/**
 * The socket's: anybody can write an `x-forwarded-for`. All clients behind one proxy have one address, and
 * together the limit of one.
 */
export const socketAddress: ClientAddress = (_req, res) => res.address
