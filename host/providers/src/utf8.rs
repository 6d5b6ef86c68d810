//! Bytes as UTF-8, in the pieces in which they come: what is none becomes U+FFFD, as the standard of
//! event streams says, and a character that two pieces share stays whole.

use bytes::{Bytes, BytesMut};

/// The replacement character.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// What has come of a character whose rest is still to come.
#[derive(Debug, Default)]
pub(crate) struct Utf8 {
    begun: BytesMut,
}

impl Utf8 {
    /// The whole characters of what is there with this piece.
    pub(crate) fn push(&mut self, piece: Bytes) -> Bytes {
        if self.begun.is_empty() && std::str::from_utf8(&piece).is_ok() {
            return piece;
        }
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(&piece);
        let mut whole = BytesMut::with_capacity(bytes.len());
        let mut rest = &bytes[..];
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    whole.extend_from_slice(text.as_bytes());
                    return whole.freeze();
                }
                Err(problem) => {
                    let (fine, other) = rest.split_at(problem.valid_up_to());
                    whole.extend_from_slice(fine);
                    let Some(bad) = problem.error_len() else {
                        self.begun.extend_from_slice(other);
                        return whole.freeze();
                    };
                    whole.extend_from_slice(REPLACEMENT);
                    rest = &other[bad..];
                }
            }
        }
    }

    /// What stands for a character that was never finished.
    pub(crate) fn end(&mut self) -> &'static [u8] {
        if std::mem::take(&mut self.begun).is_empty() { b"" } else { REPLACEMENT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_pieces<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> String {
        let mut utf8 = Utf8::default();
        let mut all = Vec::new();
        for piece in pieces {
            let came = utf8.push(Bytes::copy_from_slice(piece));
            assert!(std::str::from_utf8(&came).is_ok());
            all.extend_from_slice(&came);
        }
        all.extend_from_slice(utf8.end());
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn however_the_bytes_are_cut_they_are_the_same_text() {
        for bytes in [
            &b""[..],
            b"plain",
            "\u{feff}Gr\u{fc}\u{df}e \u{1f980}!".as_bytes(),
            b"a\xffb\xc3",
            b"\xf0\x9f\xa6 \xf0\x9f\xa6\xf0\x9f\xa6\x80",
            b"\xed\xa0\x80\xc0\xaf\xe2\x82",
            b"\x80\x80\xf4\x90\x80\x80",
        ] {
            let want = String::from_utf8_lossy(bytes);
            assert_eq!(in_pieces([bytes]), want);
            assert_eq!(in_pieces(bytes.chunks(1)), want);
            for at in 0..bytes.len() {
                let (one, other) = bytes.split_at(at);
                assert_eq!(in_pieces([one, other]), want, "{bytes:?} cut at {at}");
            }
        }
    }
}
