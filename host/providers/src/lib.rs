//! Models for the agent loop. Each knows one wire, or none, and all answer through
//! [`cofferdam_agent::model::Model`]: the loop never knows which it talks to.

pub mod scripted;
